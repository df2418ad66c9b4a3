backend "sqlite" "local" {
  local = true
}
backend "greedy" "greedy" {}
