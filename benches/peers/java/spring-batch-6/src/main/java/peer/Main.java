package peer;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.util.HashMap;
import java.util.Map;
import org.springframework.batch.core.BatchStatus;
import org.springframework.batch.core.configuration.support.MapJobRegistry;
import org.springframework.batch.core.job.Job;
import org.springframework.batch.core.job.JobExecution;
import org.springframework.batch.core.job.parameters.JobParametersBuilder;
import org.springframework.batch.core.step.Step;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.launch.support.TaskExecutorJobOperator;
import org.springframework.batch.core.partition.support.TaskExecutorPartitionHandler;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.support.JdbcJobRepositoryFactoryBean;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.infrastructure.item.ExecutionContext;
import org.springframework.batch.infrastructure.item.ItemWriter;
import org.springframework.batch.infrastructure.item.database.JdbcBatchItemWriter;
import org.springframework.batch.infrastructure.item.file.FlatFileItemReader;
import org.springframework.batch.infrastructure.item.file.builder.FlatFileItemReaderBuilder;
import org.springframework.batch.infrastructure.item.file.builder.FlatFileItemWriterBuilder;
import org.springframework.batch.infrastructure.repeat.RepeatStatus;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.FileSystemResource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;

/** The jobs of the comparison: one verb, then key=value. */
public final class Main {
    private static final int CHUNK = 1000;

    private final String verb;
    private final Map<String, String> values;
    private final HikariDataSource database;
    private final DataSourceTransactionManager transactions;
    private final JobRepository repository;

    private Main(String verb, Map<String, String> values) throws Exception {
        this.verb = verb;
        this.values = values;
        database = new HikariDataSource(pool());
        transactions = new DataSourceTransactionManager(database);
        JdbcJobRepositoryFactoryBean factory = new JdbcJobRepositoryFactoryBean();
        factory.setDataSource(database);
        factory.setTransactionManager(transactions);
        if (verb.startsWith("prepare")) {
            // The factory asks the database for its kind only.
            String kind = sqlite() ? "sqlite" : "postgresql";
            String script = "org/springframework/batch/core/schema-" + kind + ".sql";
            new ResourceDatabasePopulator(new ClassPathResource(script)).execute(database);
        }
        factory.afterPropertiesSet();
        repository = factory.getObject();
    }

    private boolean sqlite() {
        return verb.equals("csv-csv") || verb.endsWith("sqlite");
    }

    private HikariConfig pool() {
        HikariConfig pool = new HikariConfig();
        if (sqlite()) {
            pool.setJdbcUrl("jdbc:sqlite:" + values.get("file") + "?journal_mode=WAL&synchronous=FULL");
            pool.setMaximumPoolSize(1);
        } else {
            pool.setJdbcUrl("jdbc:postgresql://127.0.0.1:" + values.get("port") + "/" + values.get("database")
                    + "?user=postgres&sslmode=disable&reWriteBatchedInserts=true");
            pool.setMaximumPoolSize(4);
            pool.setMinimumIdle(1);
        }
        return pool;
    }

    private FlatFileItemReader<Person> reader() {
        return new FlatFileItemReaderBuilder<Person>()
                .name("people")
                .resource(new FileSystemResource(values.get("input")))
                .linesToSkip(1)
                .delimited()
                .names("id", "first", "last", "email", "amount", "date")
                .fieldSetMapper(row -> Person.of(row.readLong(0), row.readString(1), row.readString(2), row.readString(3),
                        row.readDouble(4), row.readString(5)))
                .build();
    }

    private ItemWriter<Person> file() {
        return new FlatFileItemWriterBuilder<Person>()
                .name("output")
                .resource(new FileSystemResource(values.get("output")))
                .headerCallback(out -> out.write("id,first,last,email,amount,date"))
                .delimited()
                .fieldExtractor(p -> new Object[] {
                    p.getId(), p.getFirst(), p.getLast(), p.getEmail(), p.getAmount(), p.getDate()
                })
                .build();
    }

    private ItemWriter<Person> table() {
        JdbcBatchItemWriter<Person> writer = new JdbcBatchItemWriter<>();
        writer.setDataSource(database);
        writer.setSql("INSERT INTO person (id, first, last, email, amount, date) VALUES (?, ?, ?, ?, ?, ?)");
        writer.setItemPreparedStatementSetter((p, statement) -> {
            statement.setLong(1, p.getId());
            statement.setString(2, p.getFirst());
            statement.setString(3, p.getLast());
            statement.setString(4, p.getEmail());
            statement.setDouble(5, p.getAmount());
            statement.setString(6, p.getDate());
        });
        writer.afterPropertiesSet();
        return writer;
    }

    private Person process(Person person) {
        if (values.containsKey("fail") && person.getId() == Long.parseLong(values.get("fail"))) {
            throw new IllegalStateException("the row at which the job fails");
        }
        return person.processed();
    }

    private StepBuilder builder(String name) {
        return new StepBuilder(name, repository);
    }

    private Step rows() {
        return builder("rows")
                .<Person, Person>chunk(CHUNK)
                .transactionManager(transactions)
                .reader(reader())
                .processor(this::process)
                .writer(verb.equals("csv-csv") ? file() : table())
                .build();
    }

    private Step skipping() {
        return builder("rows")
                .<Person, Person>chunk(CHUNK)
                .transactionManager(transactions)
                .reader(reader())
                .processor(this::process)
                .writer(table())
                .faultTolerant()
                .skip(DataAccessException.class)
                .skipLimit(1_000_000)
                .build();
    }

    private Step partitions() throws Exception {
        ThreadPoolTaskExecutor threads = new ThreadPoolTaskExecutor();
        threads.setCorePoolSize(2);
        threads.setDaemon(true);
        threads.afterPropertiesSet();
        TaskExecutorPartitionHandler handler = new TaskExecutorPartitionHandler();
        handler.setGridSize(PartReader.PARTITIONS);
        handler.setTaskExecutor(threads);
        handler.setStep(builder("part")
                .<Person, Person>chunk(CHUNK)
                .transactionManager(transactions)
                .reader(new PartReader())
                .processor(this::process)
                .writer(table())
                .build());
        handler.afterPropertiesSet();
        return builder("parts").partitioner("part", Main::parts).partitionHandler(handler).build();
    }

    private static Map<String, ExecutionContext> parts(int size) {
        Map<String, ExecutionContext> parts = new HashMap<>();
        for (int part = 0; part < size; part++) {
            ExecutionContext context = new ExecutionContext();
            context.putLong("part", part);
            parts.put("part" + part, context);
        }
        return parts;
    }

    private Step cold() {
        return builder("nothing").tasklet((contribution, context) -> RepeatStatus.FINISHED, transactions).build();
    }

    /** A job of one step. */
    private interface Steps {
        Step of(Main main) throws Exception;
    }

    private static final Map<String, Steps> JOBS = Map.of(
            "csv-csv", Main::rows,
            "csv-sqlite", Main::rows,
            "csv-postgres", Main::rows,
            "skip", Main::skipping,
            "restart", Main::rows,
            "cold", Main::cold,
            "partitions", Main::partitions);

    private Step step() throws Exception {
        if (!JOBS.containsKey(verb)) {
            throw new IllegalArgumentException("no job `" + verb + "`");
        }
        return JOBS.get(verb).of(this);
    }

    private JobExecution run() throws Exception {
        Job job = new JobBuilder("peers", repository).start(step()).build();
        MapJobRegistry registry = new MapJobRegistry();
        registry.register(job);
        TaskExecutorJobOperator operator = new TaskExecutorJobOperator();
        operator.setJobRepository(repository);
        operator.setJobRegistry(registry);
        operator.afterPropertiesSet();
        // A launch with the same parameters restarts the failed job.
        return operator.start(job, new JobParametersBuilder().addString("input", values.get("input")).toJobParameters());
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
        Main main = new Main(words[0], values);
        try {
            if (words[0].startsWith("prepare")) {
                return;
            }
            JobExecution execution = main.run();
            long nanos = System.nanoTime() - begin;
            BatchStatus expected = values.containsKey("fail") ? BatchStatus.FAILED : BatchStatus.COMPLETED;
            if (execution.getStatus() != expected) {
                throw new IllegalStateException(execution.toString() + execution.getAllFailureExceptions());
            }
            // The row of a partitioned step has the sum of its partitions.
            long written = execution.getStepExecutions().stream()
                    .filter(step -> !step.getStepName().contains(":"))
                    .mapToLong(step -> step.getWriteCount())
                    .sum();
            if (values.containsKey("expected") && written != Long.parseLong(values.get("expected"))) {
                throw new IllegalStateException(written + " items written");
            }
            System.out.println("job-seconds=" + nanos / 1e9);
        } finally {
            main.database.close();
        }
    }
}
