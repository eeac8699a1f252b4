// Details that hold a formula, and the frame of the explorable, take the space that they need.
