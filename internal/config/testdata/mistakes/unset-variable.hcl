token "ops" {
  role   = "admin"
  secret = env("HOLDFAST_NOT_SET")
}
