backend "sqlite" "local" {
  local = true
  args  = ["plugin.js", 1]
}
