backend "sqlite" "local" {
  local = true
}
mesh {
  name        = "a b"
  join_secret = ""
  secret      = "hunter2"
  user "worker" {
    password = ""
  }
  user "worker" {
    passwort = "hunter2"
  }
}
