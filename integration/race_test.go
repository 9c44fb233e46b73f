//go:build race

package integration

// underRace: the race detector makes everything slower, and an embedded database twentyfold.
const underRace = true
