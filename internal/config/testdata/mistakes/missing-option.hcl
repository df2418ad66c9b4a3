backend "postgres" "local" {
  local = true
}
