backend "sqlite" "local" {
  local = true
}
mesh {
  join          = "https://ultravisor"
  join_password = "hunter2"
}
