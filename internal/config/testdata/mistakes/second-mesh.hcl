backend "sqlite" "local" {
  local = true
}
mesh {
  join_secret = "hunter2"
}
mesh {
  name = "b"
}
