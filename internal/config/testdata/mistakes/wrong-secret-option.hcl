backend "postgres" "local" {
  local = true
  dsn   = ["postgres://ops:hunter2@db/history"]
}
