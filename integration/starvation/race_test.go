//go:build race

package starvation

const underRace = true
