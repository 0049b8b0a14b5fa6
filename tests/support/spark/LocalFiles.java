import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, with calls of Java where Hadoop starts `chmod` and `readlink`, as it does without its
 * native library: 44 processes for a micro-batch of an aggregation.
 */
public final class LocalFiles {
    public static final class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) { // which Java cannot set
                super.setPermission(path, permission);
                return;
            }
            String letters = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
        }

        /** Hadoop asks `readlink` for the path as it is here, which for a URI of a file is never a link. */
        @Override
        public FileStatus getFileLinkStatus(Path path) throws IOException {
            boolean link = Files.isSymbolicLink(new File(path.toString()).toPath());
            return link ? super.getFileLinkStatus(path) : getFileStatus(path);
        }
    }

    /** For `fs.file.impl`. */
    public static final class Local extends LocalFileSystem {
        public Local() {
            super(new Raw());
        }
    }

    /** For `fs.AbstractFileSystem.file.impl`, by which Spark writes the logs and the state of a checkpoint. */
    public static final class Context extends ChecksumFs {
        public Context(URI uri, Configuration settings) throws IOException, URISyntaxException {
            super(new RawContext(uri, settings));
        }
    }

    /** `org.apache.hadoop.fs.local.RawLocalFs`, which cannot be extended. */
    private static final class RawContext extends DelegateToFileSystem {
        RawContext(URI uri, Configuration settings) throws IOException, URISyntaxException {
            super(uri, new Raw(), settings, "file", false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public FsServerDefaults getServerDefaults() throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }
}
