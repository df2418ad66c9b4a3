backend "sqlite" "local" {
  local = true
}
backend "tape" "archive" {
}
