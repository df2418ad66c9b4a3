backend "sqlite" {
  local = true
}
