token "ops" {
  role   = "amdin"
  secret = "hunter2"
}
