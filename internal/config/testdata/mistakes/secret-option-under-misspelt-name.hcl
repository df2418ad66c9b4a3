backend "postgres" "local" {
  local = true
  dns   = "postgres://ops:hunter2@db/history"
}
