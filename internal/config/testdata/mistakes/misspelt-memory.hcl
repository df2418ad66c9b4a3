backend "sqlite" "local" {
  local       = true
  memry_limit = "1GiB"
}
