route = ["databacon", "local"]

backend "sqlite" "local" {
  local = true
}
backend "beacon" "databeacon" {}
