backend "sqlite" "local" {
  local = true
}
backend "nameless" "nameless" {}
