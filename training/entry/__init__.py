"""The file that a training job starts; the packer puts it at the root of the source tarball."""
