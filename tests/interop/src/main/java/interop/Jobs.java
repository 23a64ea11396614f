package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import org.springframework.batch.core.ExitStatus;
import org.springframework.batch.core.Job;
import org.springframework.batch.core.Step;
import org.springframework.batch.core.StepContribution;
import org.springframework.batch.core.StepExecution;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.scope.context.ChunkContext;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.core.step.tasklet.Tasklet;
import org.springframework.batch.item.ExecutionContext;
import org.springframework.batch.item.ItemProcessor;
import org.springframework.batch.item.support.AbstractItemCountingItemStreamItemReader;
import org.springframework.batch.item.support.ListItemReader;
import org.springframework.batch.repeat.RepeatStatus;
import org.springframework.transaction.PlatformTransactionManager;

/** The jobs. Those of the same names on the other side have the same steps. */
final class Jobs {
    private final JobRepository jobs;
    private final PlatformTransactionManager transactions;

    Jobs(JobRepository jobs, PlatformTransactionManager transactions) {
        this.jobs = jobs;
        this.transactions = transactions;
    }

    Job[] all() {
        return new Job[] {
            job("skips", skipping()),
            job("prepared", tasklet("prepare", (contribution, chunk) -> RepeatStatus.FINISHED), tasklet("load", this::load)),
            job("waits", tasklet("wait", this::wait)),
            repeating(),
        };
    }

    private Job job(String name, Step... steps) {
        var builder = new JobBuilder(name).repository(jobs).start(steps[0]);
        for (Step step : Arrays.asList(steps).subList(1, steps.length)) {
            builder = builder.next(step);
        }
        return builder.build();
    }

    /** Runs its step three times in one execution. */
    private Job repeating() {
        Step again = new StepBuilder("again")
                .repository(jobs)
                .transactionManager(transactions)
                .tasklet((contribution, chunk) -> {
                    long ran = contribution.getStepExecution().getJobExecution().getStepExecutions().size();
                    contribution.setExitStatus(new ExitStatus(ran < 3 ? "AGAIN" : "ENOUGH"));
                    return RepeatStatus.FINISHED;
                })
                .build();
        return new JobBuilder("repeats")
                .repository(jobs)
                .start(again)
                .on("AGAIN")
                .to(again)
                .from(again)
                .on("*")
                .end()
                .end()
                .build();
    }

    private Step tasklet(String name, Tasklet tasklet) {
        return new StepBuilder(name).repository(jobs).transactionManager(transactions).tasklet(tasklet).build();
    }

    /** Twenty numbers by fours. */
    private Step skipping() {
        return new StepBuilder("load")
                .repository(jobs)
                .transactionManager(transactions)
                .<Integer, Integer>chunk(4)
                .reader(new Numbers())
                .processor((ItemProcessor<Integer, Integer>) Jobs::processed)
                .writer(items -> {})
                .faultTolerant()
                .skip(IllegalArgumentException.class)
                .skipLimit(3)
                .build();
    }

    /** One is skipped, one filtered, and one fails. */
    private static Integer processed(Integer number) {
        switch (number) {
            case 6:
                throw new IllegalArgumentException("a six");
            case 18:
                throw new IllegalStateException(message());
            default:
                return number == 11 ? null : number;
        }
    }

    /** Longer than the column, and beyond Latin-1. */
    static String message() {
        return "größer 漢字 😀 ".repeat(400);
    }

    /** Fails or says what the parameter {@code load} tells; keeps something of each kind in both contexts. */
    private RepeatStatus load(StepContribution contribution, ChunkContext chunk) {
        StepExecution step = contribution.getStepExecution();
        for (ExecutionContext context :
                Arrays.asList(step.getExecutionContext(), step.getJobExecution().getExecutionContext())) {
            context.putString("text", "größer 漢字 😀");
            context.putLong("long", 5_000_000_000L);
            context.putInt("int", 7);
            context.putDouble("double", 0.5);
            context.put("date", new Date(1_704_067_200_123L));
            context.put("list", new ArrayList<>(Arrays.asList("a", "b")));
            context.put("map", new HashMap<>(Collections.singletonMap("key", 1L)));
            context.putString("much", message());
        }
        String told = step.getJobParameters().getString("load", "");
        if (told.equals("fail")) {
            throw new IllegalStateException(message());
        }
        contribution.setExitStatus(new ExitStatus("COMPLETED", told));
        return RepeatStatus.FINISHED;
    }

    /** Waits until somebody stops it; every turn commits, and looks. */
    private RepeatStatus wait(StepContribution contribution, ChunkContext chunk) throws InterruptedException {
        if (contribution.getStepExecution().getCommitCount() == 0) {
            Main.say("waiting " + contribution.getStepExecution().getJobExecutionId());
        }
        Thread.sleep(20);
        return RepeatStatus.CONTINUABLE;
    }

    /** The numbers to twenty, with the state that Spring Batch's own readers keep. */
    private static final class Numbers extends AbstractItemCountingItemStreamItemReader<Integer> {
        private ListItemReader<Integer> numbers;

        Numbers() {
            setName("numbers");
        }

        @Override
        protected Integer doRead() {
            return numbers.read();
        }

        @Override
        protected void doOpen() {
            Integer[] all = new Integer[20];
            Arrays.setAll(all, index -> index + 1);
            numbers = new ListItemReader<>(Arrays.asList(all));
        }

        @Override
        protected void doClose() {
            numbers = null;
        }
    }
}
