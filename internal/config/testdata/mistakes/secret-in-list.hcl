token "ops" {
  role   = "admin"
  secret = ["hunter2", env("HOME")]
}
