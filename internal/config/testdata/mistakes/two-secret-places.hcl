backend "postgres" "local" {
  local = true
  dsn   = "postgres://ops:hunter2@db"
}
backend "postgres" "mirror" {
  dsn = "postgres://ops:hunter2@db"
}
