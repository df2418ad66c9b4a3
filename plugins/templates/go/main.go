package main

import "holdfast/plugins/sdk"

func main() { sdk.Serve(&Store{}) } // the SDK keeps the rest of the contract
