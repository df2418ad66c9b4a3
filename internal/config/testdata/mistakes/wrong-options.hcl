backend "sqlite" "local" {
  local     = true
  path      = 5
  readers   = "many"
  cache     = "64 mega"
  busy_wait = 5
  mirror    = "perhaps"
}
