backend "sqlite" "local" {
  local = true
  path {
    name = "history.db"
  }
}
