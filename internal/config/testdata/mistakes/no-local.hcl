backend "sqlite" "history" {
  path = "history.db"
}
