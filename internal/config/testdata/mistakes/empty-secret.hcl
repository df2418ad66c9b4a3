token "ops" {
  role   = "read"
  secret = ""
}
