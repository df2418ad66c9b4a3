backend "../evil" "local" {
  local = true
}
