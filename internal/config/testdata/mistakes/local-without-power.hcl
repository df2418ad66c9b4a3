backend "beacon" "local" {
  local = true
}
