token "ops" {
  role   = "admin"
  secret = "hunter2"
}
token "reader" {
  role   = "read"
  secret = "hunter2"
}
