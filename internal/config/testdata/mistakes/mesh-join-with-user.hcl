backend "sqlite" "local" {
  local = true
}
mesh {
  join          = "http://holdfast:hunter2@ultravisor:54321"
}
