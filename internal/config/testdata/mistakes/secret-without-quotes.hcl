token "ops" {
  role   = "admin"
  secret = hunter2
}
