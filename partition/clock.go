package partition

import "time"

var epoch = time.Now()

// now is the monotonic time since an arbitrary start. It costs half of what time.Now does.
func now() time.Duration { return time.Since(epoch) }
