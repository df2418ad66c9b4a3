backend "sqlite" "local" {
  local        = true
  memory_limit = "1MiB"
}
