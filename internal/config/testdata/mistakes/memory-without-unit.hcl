backend "sqlite" "local" {
  local        = true
  memory_limit = "2 gigabytes"
}
