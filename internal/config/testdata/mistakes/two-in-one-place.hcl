backend "sqlite" "local" {
  local = true
}
backend "sqlite" "mirror" {
  path         = "history.db"
  busy_timeout = "1s"
}
