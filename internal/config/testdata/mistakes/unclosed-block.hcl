backend "sqlite" "local" {
  local = true
