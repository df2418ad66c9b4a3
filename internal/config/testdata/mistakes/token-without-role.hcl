token "ops" {
  secret = "hunter2"
}
