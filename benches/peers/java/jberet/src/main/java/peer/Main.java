package peer;

import jakarta.batch.runtime.BatchStatus;
import jakarta.batch.runtime.Metric;
import jakarta.batch.runtime.StepExecution;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogManager;
import javax.naming.Context;
import org.jberet.operations.JobOperatorImpl;
import org.jberet.runtime.JobExecutionImpl;

/** The jobs of the comparison: one verb, then key=value. */
public final class Main {
    /** The jobs, with their names in META-INF/batch-jobs. */
    private static final Map<String, String> JOBS = Map.of(
            "csv-csv", "file",
            "csv-sqlite", "rows",
            "csv-postgres", "rows",
            "skip", "skip",
            "restart", "rows",
            "cold", "cold",
            "partitions", "partitions");

    private final String verb;
    private final Map<String, String> values;

    private Main(String verb, Map<String, String> values) {
        this.verb = verb;
        this.values = values;
    }

    private String url() {
        if (verb.equals("csv-csv") || verb.endsWith("sqlite")) {
            return "jdbc:sqlite:" + values.get("file") + "?journal_mode=WAL&synchronous=FULL";
        }
        return "jdbc:postgresql://127.0.0.1:" + values.get("port") + "/" + values.get("database")
                + "?user=postgres&sslmode=disable&reWriteBatchedInserts=true";
    }

    private long start(JobOperatorImpl operator) {
        if (!JOBS.containsKey(verb)) {
            throw new IllegalArgumentException("no job `" + verb + "`");
        }
        if (verb.equals("restart")) {
            // The only execution of a database of its own.
            return operator.restart(1, new Properties());
        }
        Properties parameters = new Properties();
        parameters.setProperty("input", values.get("input"));
        parameters.setProperty("output", values.get("output"));
        return operator.start(JOBS.get(verb), parameters);
    }

    private void run(JobOperatorImpl operator, long begin) throws Exception {
        JobExecutionImpl execution = (JobExecutionImpl) operator.getJobExecution(start(operator));
        execution.awaitTermination(0, TimeUnit.SECONDS);
        long nanos = System.nanoTime() - begin;
        BatchStatus expected = values.containsKey("fail") ? BatchStatus.FAILED : BatchStatus.COMPLETED;
        if (execution.getBatchStatus() != expected) {
            throw new IllegalStateException(execution + ": " + execution.getBatchStatus());
        }
        long written = 0;
        for (StepExecution step : execution.getStepExecutions()) {
            written += Arrays.stream(step.getMetrics())
                    .filter(metric -> metric.getType() == Metric.MetricType.WRITE_COUNT)
                    .mapToLong(Metric::getValue)
                    .sum();
        }
        if (values.containsKey("expected") && written != Long.parseLong(values.get("expected"))) {
            throw new IllegalStateException(written + " items written");
        }
        System.out.println("job-seconds=" + nanos / 1e9);
    }

    public static void main(String[] words) throws Exception {
        long begin = System.nanoTime();
        if (words[0].equals("jobs")) {
            JOBS.keySet().forEach(System.out::println);
            return;
        }
        Map<String, String> values = new HashMap<>();
        for (int word = 1; word < words.length; word++) {
            String[] pair = words[word].split("=", 2);
            values.put(pair[0], pair[1]);
        }
        LogManager.getLogManager().reset();
        System.setProperty(Context.INITIAL_CONTEXT_FACTORY, Names.class.getName());
        if (values.containsKey("fail")) {
            ProcessPeople.failAt = Long.valueOf(values.get("fail"));
        }
        Main main = new Main(words[0], values);
        Environment environment = new Environment(main.url());
        try {
            Names.database = environment.database;
            if (!words[0].startsWith("prepare")) {
                main.run(new JobOperatorImpl(environment), begin);
            }
        } finally {
            environment.database.close();
        }
        // The threads of the environment stay for a minute.
        System.exit(0);
    }
}
