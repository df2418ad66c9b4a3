backend "sqlite" "local" {
  local = true
  paht  = "history.db"
}
