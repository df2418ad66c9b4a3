backend "sqlite" "local" {
  local = true
}
backend "beacon" "beacon" {}
backend "beacon" "other" {}
