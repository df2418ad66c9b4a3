backend "sqlite" "local" {
  local = true
}
backend "beacon" "local" {}
