backend "sqlite" "local" {
  local        = true
  path         = 5
  readers      = "many"
  cache        = "64 mega"
  busy_timeout = 5
  mirror       = "perhaps"
}
