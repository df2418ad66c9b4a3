route = ["history", "local"]

backend "sqlite" "history" {
  local = true
}
