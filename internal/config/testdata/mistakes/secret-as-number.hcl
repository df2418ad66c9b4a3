token "ops" {
  role   = "admin"
  secret = 7702
}
