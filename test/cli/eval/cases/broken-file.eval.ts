// A file that does not load.
throw new Error("the file is broken");
