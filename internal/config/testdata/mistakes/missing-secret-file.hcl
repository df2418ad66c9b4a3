token "ops" {
  role   = "admin"
  secret = file("testdata/no-such-file")
}
