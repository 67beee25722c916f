// Package contrast answers: is layout B faster than layout A, and how sure is that?
//
// Two predictions for one device are wrong together: the constants are the same, and so is the session. What is left is the
// error of what the layouts do not have in common: the difference of their quantities times the errors of the constants, the
// scatter and the doubt of chunks that only one of them has, and the session's factor on the difference itself. So the
// difference of two layouts is known better than either, as far as they were timed side by side ([anesim.Difference]).
//
// Start at [Of].
package contrast
