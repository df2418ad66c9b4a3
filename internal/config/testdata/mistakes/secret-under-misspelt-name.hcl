token "ops" {
  role  = "admin"
  secrt = "hunter2"
}
