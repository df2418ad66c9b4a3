token "ops" {
  role   = "admin"
  secret = getenv("HOLDFAST_TOKEN")
}
