token "ops" {
  role   = "admin"
  secret = "hunter2"
}
token "ops" {
  role   = "read"
  secret = "hunter3"
}
