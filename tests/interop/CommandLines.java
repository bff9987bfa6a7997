import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools in one virtual machine, one after the other.
 *
 * A request is a line of words in base64: the class, the standard input, the arguments. The response
 * is a line of exit code, standard output and standard error. What a tool prints after it has said
 * with which code it exits, and what threads print that it leaves behind, is lost.
 */
public class CommandLines {
    private static final int LIMIT_S = 60;

    /** What one tool reads and has printed; threads that it starts inherit it. */
    private static final class Run {
        final InputStream in;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final CompletableFuture<Integer> code = new CompletableFuture<>();
        final List<Runnable> hooks = new ArrayList<>();

        final Set<Thread> machineHooks = machineHooks();

        Run(InputStream in) {
            this.in = in;
        }
    }

    private static final class Input extends InputStream {
        @Override
        public int read() {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) {
            Run run = RUN.get();
            try {
                return run == null ? -1 : run.in.read(bytes, offset, length);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }

    private static final InheritableThreadLocal<Run> RUN = new InheritableThreadLocal<>();

    private static final class Redirect extends OutputStream {
        private final boolean isError;

        Redirect(boolean isError) {
            this.isError = isError;
        }

        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            Run run = RUN.get();
            if (run != null && !run.code.isDone()) {
                (isError ? run.err : run.out).write(bytes, offset, length);
            }
        }
    }

    @SuppressWarnings("removal")
    public static void main(String[] args) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        PrintStream responses = System.out;
        // Once, before Scala's console remembers them.
        System.setIn(new Input());
        System.setOut(new PrintStream(new Redirect(false), true, "UTF-8"));
        System.setErr(new PrintStream(new Redirect(true), true, "UTF-8"));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> {
            if (RUN.get() != null) {
                RUN.get().hooks.add(hook);
            }
        });
        ServiceExit.install();
        System.setSecurityManager(new NoExit());
        String line;
        while ((line = requests.readLine()) != null) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" ", -1)) {
                words.add(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
            }
            Run run = run(words);
            Base64.Encoder encoder = Base64.getEncoder();
            responses.println(run.code.get() + " " + encoder.encodeToString(run.out.toByteArray())
                + " " + encoder.encodeToString(run.err.toByteArray()));
            responses.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Parsers of arguments exit by themselves. */
    @SuppressWarnings("removal")
    private static final class NoExit extends SecurityManager {
        @Override
        public void checkExit(int code) {
            if (RUN.get() != null) {
                CommandLines.exit(code);
            }
        }

        @Override
        public void checkPermission(Permission permission) {
        }

        @Override
        public void checkPermission(Permission permission, Object context) {
        }
    }

    /** ZooKeeper's shell exits by its own class. */
    private static final class ServiceExit {
        static void install() throws Exception {
            Class<?> utils;
            try {
                utils = Class.forName("org.apache.zookeeper.util.ServiceUtils");
            } catch (ClassNotFoundException missing) {
                return;
            }
            java.util.function.Consumer<Integer> procedure = CommandLines::exit;
            utils.getMethod("setSystemExitProcedure", java.util.function.Consumer.class)
                .invoke(null, procedure);
        }
    }

    private static void exit(int code) {
        Run run = RUN.get();
        if (run != null) {
            end(run, code);
        }
        throw new ThreadDeath();
    }

    private static void end(Run run, int code) {
        for (Runnable hook : run.hooks) {
            try {
                hook.run();
            } catch (Throwable failed) {
                failed.printStackTrace();
            }
        }
        run.hooks.clear();
        Set<Thread> left = machineHooks();
        left.removeAll(run.machineHooks);
        for (Thread hook : left) {
            Runtime.getRuntime().removeShutdownHook(hook);
            hook.start();
            try {
                hook.join(LIMIT_S * 1000L);
            } catch (InterruptedException late) {
                break;
            }
        }
        run.code.complete(code);
    }

    /** The hooks that run at the end of the virtual machine. */
    @SuppressWarnings("unchecked")
    private static Set<Thread> machineHooks() {
        try {
            Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
            hooks.setAccessible(true);
            return new HashSet<>(((Map<Thread, Thread>) hooks.get(null)).keySet());
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static Run run(List<String> words) throws Exception {
        Run run = new Run(new ByteArrayInputStream(words.get(1).getBytes(StandardCharsets.UTF_8)));
        String[] arguments = words.subList(2, words.size()).toArray(new String[0]);
        Thread thread = new Thread(() -> {
            RUN.set(run);
            try {
                Class.forName(words.get(0)).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
                end(run, 0);
            } catch (InvocationTargetException failed) {
                if (!run.code.isDone()) {
                    failed.getCause().printStackTrace();
                    end(run, 1);
                }
            } catch (Throwable failed) {
                failed.printStackTrace();
                end(run, 1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        try {
            run.code.get(LIMIT_S, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            run.code.complete(124);
            thread.interrupt();
        }
        return run;
    }
}
