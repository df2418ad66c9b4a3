backend "sqlite" "one" {
  local = true
}
backend "sqlite" "two" {
  local = true
}
