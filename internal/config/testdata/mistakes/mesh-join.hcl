backend "sqlite" "local" {
  local = true
}
mesh {
  join          = "ultravisor:54321"
  as            = "a b"
  join_password = "hunter2"
  join_with     = ""
}
